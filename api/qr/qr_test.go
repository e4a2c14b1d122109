package qr_test

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/makiuchi-d/gozxing"
	"github.com/makiuchi-d/gozxing/qrcode"

	"linkstream/api/qr"
	"linkstream/schema/testkit"
)

func TestQR(t *testing.T) {
	longest := "https://" + strings.Repeat("long-label.", 22) + "example/" + strings.Repeat("a", 20)
	for _, c := range []struct{ text, query string }{
		{"http://sho.rt/a", ""},
		{"https://go.example.com/aB3dE9x", "level=Q&size=300&margin=9&foreground=0B3D2E&background=FFEECC"},
		{longest, "level=H&size=800&margin=4&foreground=b3261e"},
	} {
		t.Run(fmt.Sprintf("%d letters, %s", len(c.text), c.query), func(t *testing.T) {
			style, problems := parse(t, c.query)
			testkit.Equal(t, "problems", len(problems), 0)
			svg, _, err := style.Draw(c.text)
			testkit.Must(t, err)
			reads(t, drawn(t, svg, style), c.text, style.Margin)
			style.Format = qr.PNG
			data, problem, err := style.Draw(c.text)
			testkit.Must(t, err)
			testkit.Equal(t, "problem", problem, "")
			img, err := png.Decode(bytes.NewReader(data))
			testkit.Must(t, err)
			testkit.Equal(t, "size", img.Bounds().Dx(), style.Size)
			reads(t, img, c.text, style.Margin)
		})
	}
	t.Run("text that does not fit is an error", func(t *testing.T) {
		if _, _, err := qr.Default.Draw(strings.Repeat("x", 10_000)); err == nil {
			t.Error("got none")
		}
		style := qr.Default
		style.Format, style.Size = qr.PNG, qr.MinSize
		if _, problem, err := style.Draw(strings.Repeat("x", 1000)); err != nil ||
			!strings.Contains(problem, "pixels at least") {
			t.Errorf("a small PNG: %q, %v", problem, err)
		}
	})
}

// TestPNGFillsItsSize decodes codes of many sizes, and finds their corners where the margin ends.
func TestPNGFillsItsSize(t *testing.T) {
	const text = "https://sho.rt/aB3dE9x"
	sizes := []int{1000, 1024, 1999, 2000, 2047, qr.MaxSize}
	for size := qr.MinSize; size < 330; size += 1 + size/20 {
		sizes = append(sizes, size)
	}
	for _, size := range sizes {
		for i, level := range []string{"L", "M", "Q", "H"} {
			for _, margin := range []int{0, 1, 4, qr.MaxMargin} {
				if size > 330 && (margin+i)%4 != 1 {
					continue
				}
				style := qr.Default
				style.Format, style.Size, style.Level, style.Margin = qr.PNG, size, level, margin
				data, problem, err := style.Draw(text)
				if err != nil || problem != "" {
					t.Fatalf("size %d, level %s, margin %d: %q, %v", size, level, margin, problem, err)
				}
				img, err := png.Decode(bytes.NewReader(data))
				if err != nil {
					t.Fatal(err)
				}
				style.Format = qr.SVG
				svg, _, err := style.Draw(text)
				testkit.Must(t, err)
				if what := wrong(img, style, modulesOf(t, svg), text); what != "" {
					t.Errorf("size %d, level %s, margin %d: %s", size, level, margin, what)
				}
			}
		}
	}
}

// modulesOf returns the modules in a row of an SVG, with the margins.
func modulesOf(t *testing.T, svg []byte) (modules int) {
	t.Helper()
	_, box, _ := strings.Cut(string(svg), `viewBox="0 0 `)
	_, err := fmt.Sscanf(box, "%d", &modules)
	testkit.Must(t, err)
	return modules
}

// wrong returns what is wrong with an image.
func wrong(img image.Image, style qr.Style, modules int, text string) string {
	size := style.Size
	if img.Bounds() != image.Rect(0, 0, size, size) {
		return fmt.Sprint("it has ", img.Bounds())
	}
	margin := float64(style.Margin*size) / float64(modules)
	var dark image.Rectangle
	for y := range size {
		for x := range size {
			if img.(*image.Paletted).ColorIndexAt(x, y) == 1 {
				dark = dark.Union(image.Rect(x, y, x+1, y+1))
			}
		}
	}
	for name, border := range map[string]int{"left": dark.Min.X, "top": dark.Min.Y, "right": size - dark.Max.X,
		"bottom": size - dark.Max.Y} {
		if math.Abs(float64(border)-margin) >= 1 || margin == 0 && border != 0 {
			return fmt.Sprintf("the %s border has %d pixels, want %.2f", name, border, margin)
		}
	}
	if size < 2*modules {
		return "" // too small for most cameras
	}
	bitmap, err := gozxing.NewBinaryBitmapFromImage(img)
	if err != nil {
		return err.Error()
	}
	result, err := qrcode.NewQRCodeReader().Decode(bitmap, nil)
	if err != nil || result.GetText() != text {
		return fmt.Sprint("it reads ", result, ", ", err)
	}
	return ""
}

func BenchmarkPNG(b *testing.B) {
	for _, size := range []int{qr.Default.Size, 1024, qr.MaxSize} {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			style := qr.Default
			style.Format, style.Size, style.Level = qr.PNG, size, "H"
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := style.Draw("https://go.example.com/aB3dE9x"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func parse(t *testing.T, query string) (qr.Style, map[string]string) {
	t.Helper()
	values, err := url.ParseQuery(query)
	testkit.Must(t, err)
	return qr.Parse(func(field string) (string, bool) { return values.Get(field), values.Has(field) })
}

func TestParse(t *testing.T) {
	for query, fields := range map[string]string{
		"": "", "format=png&size=64&level=L&margin=0": "", "foreground=ffffff&background=000000": "foreground",
		"foreground=777777": "",
		"foreground=BBBBBB": "", "foreground=CCCCCC": "foreground", "background=333333": "foreground",
		"foreground=abc": "foreground", "background=%23fff000": "background",
		"size=63&margin=17&level=m&format=gif": "format level margin size", "size=&margin=-1": "margin size",
		"size=2049": "size",
	} {
		_, problems := parse(t, query)
		testkit.Equal(t, query, strings.Join(slices.Sorted(maps.Keys(problems)), " "), fields)
	}
}

// reads decodes the code as a camera would, and checks that a zone of some modules surrounds it.
func reads(t *testing.T, img image.Image, want string, margin int) {
	t.Helper()
	bitmap, err := gozxing.NewBinaryBitmapFromImage(img)
	if err != nil {
		t.Fatal(err)
	}
	result, err := qrcode.NewQRCodeReader().Decode(bitmap, nil)
	if err != nil {
		t.Fatal(err)
	}
	if result.GetText() != want {
		t.Errorf("it says %q, want %q", result.GetText(), want)
	}
	size := img.Bounds().Dx()
	quiet := 0
	for quiet < size && light(img, quiet, quiet) { // up to the corner of the first finder, which is dark
		quiet++
	}
	module := 0
	for module < size-quiet && !light(img, quiet+module, quiet) {
		module++ // the finder's upper edge is seven modules long
	}
	if (quiet+1)*7 < margin*module { // a pixel less by rounding
		t.Errorf("the zone around it is %d pixels wide, a module %d/7", quiet, module)
	}
}

func light(img image.Image, x, y int) bool {
	return color.GrayModel.Convert(img.At(x, y)).(color.Gray).Y > 127
}

var runs = regexp.MustCompile(`M(\d+) (\d+)h(\d+)v1h-(\d+)z`)

// drawn paints the SVG with eight pixels per module, in black and white.
func drawn(t *testing.T, svg []byte, style qr.Style) image.Image {
	t.Helper()
	var doc struct {
		ViewBox string `xml:"viewBox,attr"`
		Paths   []struct {
			Fill string `xml:"fill,attr"`
			D    string `xml:"d,attr"`
		} `xml:"path"`
	}
	if err := xml.Unmarshal(svg, &doc); err != nil {
		t.Fatal(err)
	}
	var size int
	if _, err := fmt.Sscanf(doc.ViewBox, "0 0 %d", &size); err != nil || len(doc.Paths) != 2 {
		t.Fatalf("view box %q, %d paths", doc.ViewBox, len(doc.Paths))
	}
	if all := fmt.Sprintf("M0 0h%dv%dH0z", size, size); !strings.EqualFold(doc.Paths[0].Fill, "#"+
		qr.Hex(style.Background)) || doc.Paths[0].D != all {
		t.Errorf("the ground is %+v", doc.Paths[0])
	}
	const scale = 8
	img := image.NewGray(image.Rect(0, 0, size*scale, size*scale))
	for i := range img.Pix {
		img.Pix[i] = 255
	}
	for _, run := range runs.FindAllStringSubmatch(doc.Paths[1].D, -1) {
		x, _ := strconv.Atoi(run[1])
		y, _ := strconv.Atoi(run[2])
		width, _ := strconv.Atoi(run[3])
		if run[3] != run[4] || !strings.EqualFold(doc.Paths[1].Fill, "#"+qr.Hex(style.Foreground)) {
			t.Fatalf("a run of %v in %s", run, doc.Paths[1].Fill)
		}
		for py := y * scale; py < (y+1)*scale; py++ {
			for px := x * scale; px < (x+width)*scale; px++ {
				img.Pix[img.PixOffset(px, py)] = 0
			}
		}
	}
	return img
}
