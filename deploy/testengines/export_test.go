package testengines

// Install and FreePort are tested on their own: what the engines do with them depends on the machine.
var (
	Install  = install
	FreePort = freePort
)
