package schema

import (
	"errors"
	"fmt"
)

// Code classifies an error at the boundary of a store or a service. What a client or an operator is told follows from
// the code; the wrapped cause is for the log alone.
type Code string

// The codes, and what each one means to a caller.
const (
	CodeInvalid      Code = "invalid"      // a field breaks a rule; Error.Fields says which and why
	CodeUnauthorized Code = "unauthorized" // the credentials are missing, unknown or revoked
	CodeForbidden    Code = "forbidden"    // the account is suspended
	CodeNotFound     Code = "not_found"    // there is no such thing, or it is not the caller's
	CodeConflict     Code = "conflict"     // it exists already, or it moved on in the meantime
	CodeUnsafeURL    Code = "unsafe_url"   // the long URL is on a blocklist
	CodeUnavailable  Code = "unavailable"  // an engine does not answer; the same call may succeed later
	CodeInternal     Code = "internal"     // anything else
)

// Error is an error with a code. Message is fit for a client; Err, the cause, is not.
type Error struct {
	Code    Code
	Message string
	Fields  map[string][]string // by the name of the field; set with CodeInvalid
	Err     error
}

// Errorf returns an Error with the code and a formatted message.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

func (e *Error) Error() string {
	if e.Err != nil {
		return e.Message + ": " + e.Err.Error()
	}
	return e.Message
}

func (e *Error) Unwrap() error { return e.Err }

// ErrorCode returns the code of the first Error in err's chain, CodeInternal where there is none, "" for nil.
func ErrorCode(err error) Code {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return CodeInternal
}
