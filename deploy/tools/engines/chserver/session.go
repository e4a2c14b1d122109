//go:build linux

package main

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// maxIdle is how many sessions wait for a query like their last one.
const maxIdle = 16

// readPattern matches what leaves a session as it was.
var readPattern = regexp.MustCompile(`(?i)^\s*(?:SELECT|WITH|DESCRIBE|EXPLAIN)\b`)

// session is a connection that has a request's settings and database.
type session struct {
	*conn
	setup string // the statements that made it so
	tag   string // of its queries, in the list of those that run
}

// sessions are idle ones. Making one takes as long as a small query.
type sessions struct {
	mu   sync.Mutex
	idle []*session // the one used last at the end
}

// take returns an idle session that was made so, nil if there is none.
func (s *sessions) take(setup string) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.idle) - 1; i >= 0; i-- {
		if found := s.idle[i]; found.setup == setup {
			s.idle = slices.Delete(s.idle, i, i+1)
			return found
		}
	}
	return nil
}

// put keeps a session in which nothing runs, and closes the one that was idle longest if there are too many.
func (s *sessions) put(one *session) {
	s.mu.Lock()
	s.idle = append(s.idle, one)
	var oldest *session
	if len(s.idle) > maxIdle {
		oldest = s.idle[0]
		s.idle = slices.Delete(s.idle, 0, 1)
	}
	s.mu.Unlock()
	if oldest != nil {
		oldest.close()
	}
}

// close closes all of them.
func (s *sessions) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.idle {
		one.close()
	}
	s.idle = nil
}

// lasting reports whether another request may have r's session: what changes a session is not passed on, and a query
// whose client gave it an id is to be found by that.
func (r *request) lasting() bool {
	return r.id == "" && r.rows == nil && readPattern.Match(r.sql) && !bytes.ContainsRune(r.sql, ';')
}

// open returns a session for r.
func (e *engine) open(r *request) (*session, error) {
	setup := r.setup()
	if r.lasting() {
		if idle := e.idle.take(setup); idle != nil {
			return idle, nil
		}
	}
	c, err := e.lib.dial(e.data)
	if err != nil {
		return nil, err
	}
	s := &session{conn: c, setup: setup, tag: r.id}
	if s.tag == "" {
		s.tag = fmt.Sprintf("chserver-%d", e.unnamed.Add(1))
	}
	if _, err := c.query([]byte("SET "+tagSetting+" = "+quote(s.tag)+setup), "Null"); err != nil {
		c.close()
		return nil, err
	}
	return s, nil
}

// setup returns how a statement goes on that makes a new session the one that r wants.
func (r *request) setup() string {
	sql := []byte(", implicit_select = 0")
	slices.SortStableFunc(r.settings, func(a, b setting) int { return strings.Compare(a.name, b.name) })
	for _, s := range r.settings { // clients send them in any order
		sql = fmt.Appendf(sql, ", `%s` = %s", s.name, quote(s.value))
	}
	if r.database != "" && r.database != "default" {
		sql = fmt.Appendf(sql, "; USE `%s`", r.database)
	}
	return string(sql)
}
