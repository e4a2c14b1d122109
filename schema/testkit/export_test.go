package testkit

// They are exported to tests because Takes and Follows show only what comes of them.
var (
	Keeps = keeps
	Watch = watch
)
