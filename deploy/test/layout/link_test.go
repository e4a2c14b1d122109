package layout_test

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

var (
	codeBlocks   = regexp.MustCompile("(?ms)^```.*?^```$")
	markdownLink = regexp.MustCompile(`\]\(([^)\s]+)\)|src(?:set)?="([^"]+)"`)
	notInAnchor  = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// deadLinks returns the relative links in Markdown whose file or heading does not exist.
func deadLinks(tree fs.FS) (violations []string, err error) {
	visit := func(name string) error {
		if path.Ext(name) != ".md" {
			return nil
		}
		text, err := readMarkdown(tree, name)
		for _, found := range markdownLink.FindAllStringSubmatch(text, -1) {
			if link := found[1] + found[2]; !strings.Contains(link, ":") && !leads(tree, name, link) {
				violations = append(violations, fmt.Sprintf("%s: %s leads nowhere", name, link))
			}
		}
		return err
	}
	if err := walkSources(tree, visit); err != nil {
		return nil, err
	}
	hidden, err := fs.Sub(tree, ".github")
	if err != nil {
		return nil, err
	}
	return violations, walkSources(hidden, func(name string) error { return visit(path.Join(".github", name)) })
}

// readMarkdown returns a file without its blocks of code.
func readMarkdown(tree fs.FS, name string) (string, error) {
	text, err := fs.ReadFile(tree, name)
	return codeBlocks.ReplaceAllString(string(text), ""), err
}

// leads reports whether a link in a file leads to a file, and to one of its headings if the link names one.
func leads(tree fs.FS, from, link string) bool {
	to, anchor, _ := strings.Cut(link, "#")
	name := from
	if to != "" {
		name = path.Join(path.Dir(from), to)
	}
	if _, err := fs.Stat(tree, name); err != nil || anchor == "" {
		return err == nil
	}
	text, _ := readMarkdown(tree, name)
	for line := range strings.Lines(text) {
		heading := strings.ToLower(strings.TrimSpace(strings.TrimLeft(line, "#")))
		if strings.HasPrefix(line, "#") && strings.ReplaceAll(notInAnchor.ReplaceAllString(heading, ""), " ", "-") == anchor {
			return true
		}
	}
	return false
}
