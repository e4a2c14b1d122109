package admin

var ParseHost = parseHost
