//go:build linux

package main

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
)

// unknownException is ClickHouse's code for errors that have no other.
const unknownException = 1002

// exception is an error of the engine, which a client is told.
type exception struct {
	code int
	text string
}

func (x *exception) Error() string { return x.text }

var exceptionCode = regexp.MustCompile(`Code: (\d+)\. `)

func newException(text string) *exception {
	x := &exception{code: unknownException, text: strings.TrimSpace(text)}
	if m := exceptionCode.FindStringSubmatch(text); m != nil {
		x.code, _ = strconv.Atoi(m[1])
	}
	return x
}

// asException returns err as a client is told it.
func asException(err error) *exception {
	if x, ok := errors.AsType[*exception](err); ok {
		return x
	}
	return newException("Code: " + strconv.Itoa(unknownException) + ". DB::Exception: chserver: " + err.Error())
}
