package schema

import (
	"errors"
	"fmt"
)

// Code classifies an error at the boundary of a store or a service. The code decides what a caller does about it.
type Code string

// The codes.
const (
	CodeInvalid      Code = "invalid"      // a field breaks a rule; see Error.Fields
	CodeUnauthorized Code = "unauthorized" // the credentials are missing, unknown or revoked
	CodeForbidden    Code = "forbidden"    // the account is suspended
	CodeNotFound     Code = "not_found"    // the object does not exist, or belongs to another account
	CodeConflict     Code = "conflict"     // the object exists already, or has changed in the meantime
	CodeUnsafeURL    Code = "unsafe_url"   // the host of the long URL is on the blocklist
	CodeUnavailable  Code = "unavailable"  // an engine does not answer; a retry may succeed
	CodeBusy         Code = "busy"         // the account has too much under way, or asks for too much at once
	CodeInternal     Code = "internal"     // anything else
)

// Error is an error with a code. Message and Fields are for the client of a service, Err is for its operator. Stores
// set Err alone: the service that turns a store's outcome into an answer writes the message.
type Error struct {
	Code    Code
	Message string              // a sentence for clients, or ""
	Fields  map[string][]string // sentences that a client may read, by the name of the invalid field; with CodeInvalid
	Err     error               // the operation that failed and its cause, for logs; never shown to a client
}

// Errorf returns an Error for operators: its text never reaches a client. As in fmt.Errorf, %w sets the cause.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Err: fmt.Errorf(format, args...)}
}

// ClientErrorf returns an Error with a message that a client may read.
func ClientErrorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Error returns the text for logs: Err's text, or Message without an Err.
func (e *Error) Error() string {
	if e.Err != nil {
		return e.Err.Error()
	}
	return e.Message
}

func (e *Error) Unwrap() error { return e.Err }

// ErrorCode returns the code of the first Error in err's chain, CodeInternal if it has none, "" for nil.
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
