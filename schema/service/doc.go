// Package service holds what the programs share:
//
//   - settings from flags and the environment: Section, Parse
//   - the life of a program: Main, Await for engines that are not up yet, RunInBackground
//   - HTTP servers that drain when they stop: Listen, Serve, and Standby for the time until the engines are up
//   - Ops, the operators' listener with /healthz, /readyz, /metrics and profiles
//   - metrics beyond those of package metrics: Describe, Histogram
//   - LogConfig for logs, KeepPrivate for data directories, AllowConnections for the limit of open files
package service
