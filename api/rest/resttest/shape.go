package resttest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"testing"
	"time"
)

// Shape describes an object: the names of exactly all its fields, each with a check of its value.
type Shape map[string]func(any) error

func (s Shape) Check(t *testing.T, o Object) {
	t.Helper()
	if err := s.errors(o); err != nil {
		t.Error(err)
	}
}

func (s Shape) errors(o Object) (err error) {
	for name, kind := range s {
		if v, ok := o[name]; !ok {
			err = errors.Join(err, fmt.Errorf("field %q is missing: %v", name, o))
		} else if wrong := kind(v); wrong != nil {
			err = errors.Join(err, fmt.Errorf("field %q: %w", name, wrong))
		}
	}
	for name := range o {
		if s[name] == nil {
			err = errors.Join(err, fmt.Errorf("field %q is not in the contract: %v", name, o))
		}
	}
	return err
}

// Is returns an error if v is not an object of this shape.
func (s Shape) Is(v any) error {
	o, ok := v.(Object)
	if !ok {
		return fmt.Errorf("%v is not an object", v)
	}
	return s.errors(o)
}

func text(v any) error {
	if s, ok := v.(string); !ok || s == "" {
		return fmt.Errorf("%v is not a non-empty string", v)
	}
	return nil
}

func link(v any) error {
	s, _ := v.(string)
	if u, err := url.Parse(s); err != nil || u.Scheme == "" || u.Host == "" {
		return fmt.Errorf("%v is not an absolute URL", v)
	}
	return nil
}

func boolean(v any) error {
	if _, ok := v.(bool); !ok {
		return fmt.Errorf("%v is not a boolean", v)
	}
	return nil
}

func yes(v any) error {
	if v != true {
		return fmt.Errorf("%v is not true", v)
	}
	return nil
}

func integer(v any) error {
	n, _ := v.(json.Number)
	if _, err := n.Int64(); err != nil {
		return fmt.Errorf("%v is not an integer", v)
	}
	return nil
}

func structure(v any) error {
	if _, ok := v.(Object); !ok {
		return fmt.Errorf("%v is not an object", v)
	}
	return nil
}

func array(v any) error {
	if _, ok := v.([]any); !ok {
		return fmt.Errorf("%v is not an array", v)
	}
	return nil
}

var momentForm = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00$`)

// moment accepts created_at in ISO 8601, in UTC with the offset +00:00, never Z.
func moment(v any) error {
	s, _ := v.(string)
	if at, err := time.Parse(time.RFC3339, s); err != nil || !momentForm.MatchString(s) {
		return fmt.Errorf("%v is not of the form 2006-01-02T15:04:05+00:00", v)
	} else if age := time.Since(at); age < -2*time.Second || age > time.Hour {
		return fmt.Errorf("%v is %s ago", v, age)
	}
	return nil
}

// WantError requires the body of an error as in section 7 of the contract: a message, and with status 422 an object
// errors with exactly these fields, each with an array of messages.
func (a Answer) WantError(t *testing.T, status int, fields ...string) Answer {
	t.Helper()
	a.Want(t, status)
	switch {
	case status == http.StatusUnauthorized:
		Shape{"message": text}.Check(t, a.Body)
	case status == http.StatusNotFound:
		Shape{"message": text, "error": exactly("not_found")}.Check(t, a.Body)
	case status == http.StatusUnprocessableEntity && len(fields) == 0:
		Shape{"message": text, "error": exactly("unsafe_url")}.Check(t, a.Body)
	case status == http.StatusUnprocessableEntity:
		Shape{"message": text, "errors": structure}.Check(t, a.Body)
	default: // the contract does not define other fields
		if err := text(a.Body["message"]); err != nil {
			t.Errorf("message: %v: %v", err, a)
		}
	}
	errors, _ := a.Body["errors"].(Object)
	for _, name := range fields {
		messages, _ := errors[name].([]any)
		if len(messages) == 0 {
			t.Errorf("errors has no messages for %q: %v", name, a)
		}
		for _, m := range messages {
			if err := text(m); err != nil {
				t.Errorf("errors of %q: %v: %v", name, err, a)
			}
		}
	}
	if len(errors) != len(fields) {
		t.Errorf("errors should have the fields %q only: %v", fields, a)
	}
	return a
}

func exactly(want string) func(any) error {
	return func(v any) error {
		if v != want {
			return fmt.Errorf("%v is not %q", v, want)
		}
		return nil
	}
}
