# Copies pages that another command has made, if there are any, FROM their folder TO that of the documentation.
file(GLOB pages "${FROM}/*")
foreach(page IN LISTS pages)
  if(IS_DIRECTORY "${page}" OR page MATCHES "[.](html|css|js|svg|png)$")
    file(COPY "${page}" DESTINATION "${TO}")
  endif()
endforeach()
