//go:build linux

package main

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
)

// insertPattern matches an INSERT whose rows travel apart from it.
var insertPattern = regexp.MustCompile(`(?is)^(.*?\bINSERT\s+INTO\s+(?:TABLE\s+)?)([^\s(]+)\s*` +
	`(\((?:[^()]|\([^()]*\))*\))?(\s+SETTINGS\s.*?)?\s*(?:FORMAT\s+(\w+)|VALUES)\s*;?\s*$`)

// insert is a statement that insertPattern matches.
type insert struct {
	head, table, columns, settings, format string
}

func parseInsert(sql []byte) *insert {
	m := insertPattern.FindSubmatch(sql)
	if m == nil {
		return nil
	}
	return &insert{head: string(m[1]), table: string(m[2]), columns: string(m[3]), settings: string(m[4]),
		format: cmp.Or(string(m[5]), "Values")}
}

// selection returns a query whose result has the columns that the insert's rows have.
func (i *insert) selection() string {
	columns := cmp.Or(strings.TrimSuffix(strings.TrimPrefix(i.columns, "("), ")"), "*")
	return "SELECT " + columns + " FROM " + i.table
}

// from returns the statement that reads the rows from a file.
func (i *insert) from(path string) []byte {
	return fmt.Appendf(nil, "%s%s%s FROM INFILE %s%s FORMAT %s",
		i.head, i.table, i.columns, quote(path), i.settings, i.format)
}

var (
	killPattern    = regexp.MustCompile(`(?i)^\s*KILL\s+QUERY\b`)
	queryIDPattern = regexp.MustCompile(`(?i)\bquery_id\b`)
)

// withTags returns sql so that a KILL QUERY finds queries by the id that their clients gave them: the engine gives
// each query another id and has the client's as a setting.
func withTags(sql []byte) []byte {
	if !killPattern.Match(sql) {
		return sql
	}
	return queryIDPattern.ReplaceAll(sql, []byte("Settings['"+tagSetting+"']"))
}

var (
	quoter   = strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\x00", `\0`)
	unquoter = strings.NewReplacer(`\\`, `\`, `\'`, `'`, `\n`, "\n", `\r`, "\r", `\t`, "\t", `\0`, "\x00")
)

func quote(s string) string { return "'" + quoter.Replace(s) + "'" }

// unquote undoes the quotes in which parameters travel by the native protocol.
func unquote(s string) string {
	if len(s) >= 2 && s[0] == '\'' && s[len(s)-1] == '\'' {
		return unquoter.Replace(s[1 : len(s)-1])
	}
	return s
}
