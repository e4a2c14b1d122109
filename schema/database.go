package schema

// Database keeps everything but clicks.
type Database interface {
	LinkStore
	AccountStore
	TokenStore
	SessionStore
	AttemptStore
	DomainStore
	RateStore
}
