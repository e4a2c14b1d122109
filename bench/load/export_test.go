package load

// ParseHeader is for tests of what a server may send.
var ParseHeader = parseHeader
