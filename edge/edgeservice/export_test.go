package edgeservice

// GCPercent is gcPercent for tests.
var GCPercent = gcPercent
