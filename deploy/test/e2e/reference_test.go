//go:build engines

package e2e_test

import (
	"fmt"
	"testing"

	"linkstream/deploy/tools/engines/enginetest"
)

// TestReference reads the API reference in a browser, with everything on the page open.
func TestReference(t *testing.T) {
	t.Parallel()
	axe := enginetest.AxeCore(t)
	b := startStandalone(t).tab(t)
	b.page("/api/v1/docs#Link.title")
	if !evaluate[bool](b, `document.getElementById("Link.title").checkVisibility()`) {
		t.Error("a link to a field does not open its object")
	}
	b.reachableByKeyboard()
	evaluate[int](b, `[...document.querySelectorAll("details")].map((e) => e.open = true).length`)
	evaluate[*struct{}](b, "(() => {"+axe+"; return null })()")
	for _, width := range append(widths, layoutWidths...) {
		b.size(width, 900)
		b.fitsWidth()
	}
	for _, width := range widths {
		b.size(width, 900)
		b.scheme("light")
		b.passesAxe("document", fmt.Sprintf("light at %d pixels", width), `rules: { "target-size": { enabled: true } }`)
	}
	b.scheme("dark")
	b.passesAxe("document", "dark", `runOnly: ["color-contrast"]`) // all that differs
	b.hasHierarchy()
	b.zooms()
}
