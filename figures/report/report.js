// Draws the figures one after another, so that the page answers meanwhile.
(async () => {
  const page = document.documentElement;
  const errors = [];
  const note = (message) => {
    errors.push(message);
    page.dataset.errors = JSON.stringify(errors);
  };
  window.addEventListener('error', (event) => note(event.message));
  const options = {
    displaylogo: false, showSendToCloud: false, responsive: true,
  };
  for (const plot of document.querySelectorAll('.plot')) {
    const source = document.getElementById(`${plot.id}-data`);
    try {
      const {data, layout} = JSON.parse(source.textContent);
      await Plotly.newPlot(plot, data, layout, options);
      plot.dataset.drawn = 'yes';
    } catch (error) {
      note(`${plot.id}: ${error}`);
      plot.textContent = 'This figure could not be drawn.';
    }
    await new Promise((resolve) => setTimeout(resolve));
  }
  page.dataset.finished = 'yes';
  const fit = () => document.querySelectorAll('.plot').forEach(
      (plot) => Plotly.Plots.resize(plot));
  window.addEventListener('beforeprint', fit);
  window.addEventListener('afterprint', fit);
  // Links from the summary open the part that they lead to.
  const open = () => {
    const target = location.hash && document.querySelector(location.hash);
    if (target && target.tagName === 'DETAILS') target.open = true;
  };
  window.addEventListener('hashchange', open);
  open();
})();
