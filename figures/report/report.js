// Draws the figures one after another, so that the page answers meanwhile.
(async () => {
  const page = document.documentElement;
  const errors = [];
  const note = (message) => {
    errors.push(message);
    page.dataset.errors = JSON.stringify(errors);
  };
  window.addEventListener('error', (event) => note(event.message));
  document.addEventListener('securitypolicyviolation', (event) => note(
      `${event.violatedDirective}: ${event.blockedURI}`));

  // On a phone, panels that stand side by side stand one below the other.
  // Returns whether a figure fits then; others scroll in their own frame.
  const stack = (data, layout) => {
    const axes = Object.keys(layout).filter((key) => /^xaxis/.test(key)).map(
        (key) => [layout[key], layout[layout[key].anchor.replace('y', 'yaxis')]]);
    const rows = axes.some(([, y]) => y.domain[1] - y.domain[0] < 0.9);
    const beside = (layout.legend || {}).orientation !== 'h';  // Takes width.
    const many = axes.some(([x]) => (x.ticktext || []).length > 5);
    if (rows || beside || many) return false;
    const step = 330;  // Pixels from panel to panel.
    const drawn = 220;
    const all = step * (axes.length - 1) + drawn;
    const names = data.filter(
        (trace) => trace.name && trace.showlegend !== false);
    const legend = {...layout.legend, y: 1 + 30 / all, font: {size: 11}};
    const margin = {l: 60, r: 10, t: 40 + 20 * names.length, b: 75};
    Object.assign(layout, {legend, margin, height: all + margin.t + margin.b});
    for (const note of layout.annotations || []) {
      if (note.xref !== 'paper' || note.yref !== 'paper') continue;
      const index = axes.findIndex(([x]) => note.x <= x.domain[1]);
      Object.assign(note, {x: 0.5, y: 1 - index * step / all});
    }
    axes.forEach(([x, y], i) => {
      const top = 1 - i * step / all;
      x.domain = [0, 1];
      y.domain = [Math.max(0, top - drawn / all), top];
      y.showticklabels = true;
    });
    return true;
  };

  const plots = document.querySelectorAll('.plot');
  // Returns what an element holds, compressed and in base64.
  const unpack = (element) => {
    const bytes = Uint8Array.from(
        atob(element.textContent), (letter) => letter.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(
        new DecompressionStream('gzip')));
  };
  const load = async () => {
    const packed = document.getElementById('plotly');
    let address = 'plotly.min.js';
    if (packed) {
      const parts = [await unpack(packed).arrayBuffer()];
      address = URL.createObjectURL(
          new Blob(parts, {type: 'text/javascript'}));
    }
    const script = document.createElement('script');
    script.src = address;
    await new Promise((resolve, reject) => {
      script.onload = resolve;
      script.onerror = () => reject(new Error(`cannot load ${address}`));
      document.head.append(script);
    });
  };

  try {
    if (plots.length) await load();
  } catch (error) {
    note(String(error));
  }
  for (const plot of plots) {
    try {
      const {data, layout} = await unpack(
          document.getElementById(`${plot.id}-data`)).json();
      const narrow = plot.clientWidth < 560;
      if (narrow && !stack(data, layout)) plot.classList.add('wide');
      await Plotly.newPlot(plot, data, layout, {
        displaylogo: false, showSendToCloud: false, responsive: true,
        displayModeBar: matchMedia('(hover: hover)').matches && 'hover',
      });
      plot.dataset.drawn = 'yes';
    } catch (error) {
      note(`${plot.id}: ${error}`);
      plot.textContent = 'This figure could not be drawn.';
    }
    await new Promise((resolve) => setTimeout(resolve));
  }
  const fit = () => plots.forEach((plot) => Plotly.Plots.resize(plot));
  window.addEventListener('beforeprint', () => {
    document.querySelectorAll('details.why').forEach((why) => {
      why.open = true;
    });
    fit();
  });
  window.addEventListener('afterprint', fit);
  page.dataset.finished = 'yes';
})();
