// Package service is what every program shares: settings from flags and the environment (config.go), the main function
// that runs until a signal and waits for engines (main.go), logs (log.go), the operators' listener (ops.go) and its page of
// metrics (metrics.go), the HTTP server's life (serve.go) and its connections (accept.go), the listener that answers while
// the service still waits for its engines (standby.go), and the rights of what is on disk (private.go).
package service
