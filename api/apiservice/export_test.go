package apiservice

// NewServer is newServer, for tests of time.
var NewServer = newServer
