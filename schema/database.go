package schema

// Database stores everything except clicks.
type Database interface {
	LinkStore
	AccountStore
	TokenStore
	SessionStore
	AttemptStore
	DomainStore
	CertificateStore
	UploadStore
	RateStore
}
