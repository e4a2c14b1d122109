package apiservice

// NewServer is newServer, for tests in a synctest bubble.
var NewServer = newServer
