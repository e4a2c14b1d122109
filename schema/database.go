package schema

// Database stores everything except clicks.
type Database interface {
	LinkStore
	IdempotencyStore
	AccountStore
	TokenStore
	SessionStore
	AttemptStore
	DomainStore
	CertificateStore
	ImportStore
	RateStore
	ShareStore
	WebhookStore
	ClickHookStore
	ValueStore
	LeaseStore
	Outbox
}
