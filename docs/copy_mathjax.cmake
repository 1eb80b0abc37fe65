# Copies what MathJax 2 needs to turn TeX into SVG: FROM its folder TO that of the pages.
foreach(part MathJax.js extensions jax/input/TeX jax/element jax/output/SVG/jax.js
             jax/output/SVG/config.js jax/output/SVG/autoload jax/output/SVG/fonts/TeX)
  cmake_path(GET part PARENT_PATH folder)
  file(COPY "${FROM}/${part}" DESTINATION "${TO}/${folder}")
endforeach()
