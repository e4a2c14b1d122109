package eventloop

// HeaderCacher is a Handler to which requests with header fields that it has seen before can be given without parsing them again. The
// browsers of many visitors send the same bytes.
type HeaderCacher interface {
	Handler
	// CacheHeader returns what TryCached needs of the header fields of r, a GET by HTTP/1.1 that TryServe has just answered; nil
	// if requests with these fields are always for TryServe. The result is nothing of r's. unused is an earlier result, which is used no
	// more and may be returned again, or nil.
	CacheHeader(r *Request, unused any) any
	// TryCached is TryServe for a GET of path and query by HTTP/1.1, whose header fields are byte by byte those that header was
	// made of. path is a slash and characters from [0-9A-Za-z_-]; query is what follows the question mark, visible ASCII, and is
	// empty without one. r knows its connection, but its Request is empty. If TryCached
	// returns false, the request is parsed and given to TryServe.
	TryCached(r *Request, path, query []byte, header any) bool
}
