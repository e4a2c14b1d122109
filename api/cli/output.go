package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"

	"linkstream/api/client"
)

// terminal returns whether a file is a terminal, and its width.
func terminal(file *os.File) (is bool, columns int) {
	if is = term.IsTerminal(int(file.Fd())); is {
		columns, _, _ = term.GetSize(int(file.Fd()))
	}
	if columns <= 0 {
		columns = 80
	}
	return is, columns
}

// safe replaces characters that a terminal may take for commands, or that change the direction of text, by their
// escapes in JSON, so that JSON stays the same JSON. Line breaks and tabs stay.
func safe(text string) string {
	return escape(text, func(r rune) bool {
		return r != '\n' && r != '\t' && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) ||
			r == '\u2028' || r == '\u2029' || r == utf8.RuneError
	})
}

// cell is safe for one cell of a table: it has no line breaks and tabs.
func cell(text string) string {
	return escape(safe(text), func(r rune) bool { return r == '\n' || r == '\t' })
}

func escape(text string, unsafe func(rune) bool) string {
	if strings.IndexFunc(text, unsafe) < 0 {
		return text
	}
	var escaped strings.Builder
	for _, r := range text {
		if unsafe(r) {
			fmt.Fprintf(&escaped, `\u%04x`, r)
		} else {
			escaped.WriteRune(r)
		}
	}
	return escaped.String()
}

// print prints a text, and makes it safe first.
func (c *command) print(text string) error {
	_, err := io.WriteString(c.out, safe(text))
	return err
}

// printJSON prints a JSON value as a line.
func (c *command) printJSON(value json.RawMessage) error {
	var line bytes.Buffer
	if err := json.Compact(&line, value); err != nil {
		return err
	}
	return c.print(line.String() + "\n")
}

// answer prints the answer of a call: with --json as it is, else as show does.
func answer[T any](c *command, resp *http.Response, err error, show func(T) error) error {
	raw, err := client.Read[json.RawMessage](resp, err)
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(raw)
	}
	var value T
	if err := json.Unmarshal(raw, &value); err != nil {
		return fmt.Errorf("the answer is not one of the API: %w", err)
	}
	return show(value)
}

// table prints rows: on a terminal in columns below a heading, with the last column cut to the terminal's width, and
// otherwise as lines whose cells are separated by tabs.
func (c *command) table(heading []string, rows [][]string) error {
	var text strings.Builder
	if !c.terminal {
		for _, row := range rows {
			for i := range row {
				row[i] = cell(row[i])
			}
			text.WriteString(strings.Join(row, "\t") + "\n")
		}
		return c.print(text.String())
	}
	if heading != nil {
		rows = append([][]string{heading}, rows...)
	}
	widths := map[int]int{}
	for _, row := range rows {
		for i := range row {
			row[i] = cell(row[i])
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	for _, row := range rows {
		left := c.width
		for i, cell := range row {
			if i == len(row)-1 {
				text.WriteString(cut(cell, left) + "\n")
				break
			}
			fmt.Fprintf(&text, "%-*s  ", widths[i], cell)
			left -= widths[i] + 2
		}
	}
	return c.print(text.String())
}

// cut returns a text, or so many runes of it that end with an ellipsis.
func cut(text string, runes int) string {
	if runes = max(runes, 20); utf8.RuneCountInString(text) <= runes {
		return text
	}
	return string([]rune(text)[:runes-1]) + "…"
}

// when returns a time as a cell has it.
func (c *command) when(at time.Time) string {
	if c.terminal {
		return at.Local().Format("2006-01-02 15:04")
	}
	return at.Format(time.RFC3339)
}

// fields returns the fields of a JSON object in its order, as rows of a table.
func fields(object json.RawMessage) (rows [][]string, err error) {
	decoder := json.NewDecoder(bytes.NewReader(object))
	if _, err := decoder.Token(); err != nil { // the brace
		return nil, err
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return nil, err
		}
		rows = append(rows, []string{fmt.Sprint(name), plain(value)})
	}
	return rows, nil
}

// plain returns a JSON value as a cell has it: texts without quotes, lists of texts separated by commas.
func plain(value json.RawMessage) string {
	var text string
	var list []string
	switch {
	case json.Unmarshal(value, &text) == nil: // also null
		return text
	case json.Unmarshal(value, &list) == nil:
		return strings.Join(list, ",")
	}
	return string(value)
}
