// Package service is what every program shares: settings from flags and the environment (config.go), the main function
// that runs until a signal and waits for engines (main.go), logs (log.go), the operator's endpoints and the HTTP server's
// life (ops.go), and the listener that answers while the service still waits for its engines (standby.go).
package service
