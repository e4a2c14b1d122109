package testengines

// Install and FreePort are exported to tests because which of them the engines use depends on the machine.
var (
	Install  = install
	FreePort = freePort
)
