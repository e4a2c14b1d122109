// Package service holds what the programs share:
//
//   - settings from flags, the environment and files of secrets: Section, Parse
//   - the life of a program: Main, Await for engines that are not up yet, RunInBackground
//   - listening sockets that stay open over restarts: InheritSockets
//   - HTTP servers that drain when they stop: Listen, Serve, and Standby for the time until the engines are up
//   - Ops, the operators' listener with /healthz, /readyz, /metrics and profiles, and the command Health that asks it
//   - additions to package metrics: Describe, Histogram
//   - LogConfig for logs, KeepPrivate for data directories, AllowConnections for the limit of open files
package service
