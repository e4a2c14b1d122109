//go:build engines && nightly

package e2e_test

import (
	"bytes"
	"cmp"
	"flag"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/page"
)

// picturesDir is the folder of the README's pictures, see make screenshots.
var picturesDir = flag.String("pictures", "", "`folder` for pictures of the dashboard (default a temporary one)")

// maxPicture is the largest size of a picture in bytes. The repository keeps every version of each.
const maxPicture = 150_000

// TestDashboardPictures takes the README's pictures of a filled system, and one of them if nobody asked for them:
// TestDashboardAccessibility looks at the same pages.
func TestDashboardPictures(t *testing.T) {
	t.Parallel()
	dir := *picturesDir
	if dir == "" {
		dir = t.TempDir()
	}
	s := filledSystem(t)
	b := s.tab(t, withAgent(desktop))
	if *picturesDir == "" {
		b.page("/dashboard/sign-in")
		b.picture(dir, "sign-in", 600)
		return
	}
	b.signIn(s)
	for _, p := range []struct {
		name, path, shows string // text that the complete page shows
		width             int64
		height            float64
		both              bool // in both colours
	}{
		{"report", "/dashboard/report", "Top links", 1280, 1700, true},
		{"link", "/dashboard/links/0/launch", "Busiest", 1280, 1800, false},
		{"links", "/dashboard/links", "14 links", 1280, 1100, false},
		{"phone", "/dashboard/links/0/launch", "Countries", 390, 844, true},
	} {
		b.size(p.width, 900)
		b.page(p.path)
		b.shows(p.shows)
		b.picture(dir, p.name, p.height)
		if p.both {
			b.scheme("dark")
			b.picture(dir, p.name+"-dark", p.height)
			b.scheme("light")
		}
	}
}

// picture writes a picture of the page, cut to at most that height.
func (b *tab) picture(dir, name string, height float64) {
	b.t.Helper()
	evaluate[*struct{}](b, "document.activeElement.blur(), scrollTo(0, 0), null")
	whole := call1(b, page.GetLayoutMetrics, struct{}{}).CSSContentSize
	beyond := true
	shot := call1(b, page.CaptureScreenshot, page.CaptureScreenshotParams{
		Format: page.CaptureScreenshotFormatPng, CaptureBeyondViewport: &beyond,
		Clip: &page.Viewport{Width: whole.Width, Height: min(whole.Height, height), Scale: 1}})
	small, err := reduce(shot.Data)
	b.must(err)
	if len(small) > maxPicture {
		b.t.Errorf("picture %s has %d bytes, more than %d", name, len(small), maxPicture)
	}
	b.must(os.WriteFile(filepath.Join(dir, name+".png"), small, 0o644))
}

// reduce returns the picture with its 256 most frequent colours. The other colours are shades at the edges of letters.
func reduce(data []byte) ([]byte, error) {
	decoded, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	whole := image.NewRGBA(decoded.Bounds())
	draw.Draw(whole, whole.Rect, decoded, whole.Rect.Min, draw.Src)
	counts := map[color.RGBA]int{}
	runs(whole.Pix, func(colour color.RGBA, from, to int) { counts[colour] += to - from })
	colours := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int {
		return cmp.Or(counts[b]-counts[a], cmp.Compare(a.R, b.R), cmp.Compare(a.G, b.G), cmp.Compare(a.B, b.B))
	})
	palette, nearest := color.Palette{}, map[color.RGBA]uint8{}
	for _, colour := range colours[:min(256, len(colours))] {
		palette = append(palette, colour)
	}
	for _, colour := range colours {
		nearest[colour] = uint8(palette.Index(colour))
	}
	reduced := image.NewPaletted(whole.Rect, palette)
	runs(whole.Pix, func(colour color.RGBA, from, to int) {
		copy(reduced.Pix[from:to], bytes.Repeat([]byte{nearest[colour]}, to-from))
	})
	var small bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	err = encoder.Encode(&small, reduced)
	return small.Bytes(), err
}

// runs calls visit for each run of pixels of one colour, from the first pixel to before the last. Pages consist of few,
// long runs.
func runs(pixels []byte, visit func(colour color.RGBA, from, to int)) {
	n := len(pixels) / 4
	for from := 0; from < n; {
		first, to := pixels[4*from:4*from+4], from+1
		for to < n && bytes.Equal(pixels[4*to:4*to+4], first) {
			to++
		}
		visit(color.RGBA{first[0], first[1], first[2], first[3]}, from, to)
		from = to
	}
}
