"""When do neural networks discover modules that recompose?"""
