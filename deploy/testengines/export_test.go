package testengines

// Install is exported to tests because whether the engines use it depends on the machine.
var Install = install
