package service

// OpsHosts returns the names at which operators reach a listener.
var OpsHosts = (*OpsConfig).hosts
