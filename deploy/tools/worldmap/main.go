// Command worldmap draws the dashboard's map of the world: a path for each country, or a dot where it would be too
// small to be seen. It reads the countries of Natural Earth, which are in the public domain, as TopoJSON: the files
// countries-110m.json for the shapes and countries-50m.json for the small ones of the npm package world-atlas.
//
//	go run ./deploy/tools/worldmap countries-110m.json countries-50m.json >api/dashboard/static/map.svg
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"

	"golang.org/x/text/language"
)

// The size of the map. Coordinates are integers of it.
const (
	width, height = 720, 326
	top           = 4 // above the northernmost land
)

const (
	minBend = 2.5 // least area that a point of a shape may add
	minIsle = 2.5 // least area of a shape, if it is not the only one of the country
	minLand = 9.0 // countries with less area are dots
	dot     = 2   // radius
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: worldmap countries-110m.json countries-50m.json")
		os.Exit(2)
	}
	if err := draw(os.Stdout, os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "worldmap:", err)
		os.Exit(1)
	}
}

func draw(to io.Writer, shapes, small string) error {
	countries := map[string]string{} // elements by code
	for _, file := range []string{small, shapes} {
		world, err := read(file)
		if err != nil {
			return err
		}
		land, rings := map[string]float64{}, map[string][][]point{}
		for _, country := range world.Objects.Countries.Geometries {
			code := country.code()
			size, shapes := world.land(country)
			land[code], rings[code] = land[code]+size, append(rings[code], shapes...)
		}
		delete(land, "")
		delete(land, "AQ")
		for code, size := range land {
			if file == small || size < minLand {
				at := center(rings[code])
				countries[code] = fmt.Sprintf(`<circle id="%s" cx="%d" cy="%d" r="%d"/>`, code, at.x, at.y, dot)
				continue
			}
			countries[code] = fmt.Sprintf(`<path id="%s" d="%s"/>`, code, path(rings[code], size))
		}
	}
	out := bufio.NewWriter(to)
	fmt.Fprintf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\">\n"+
		"<!-- Made by deploy/tools/worldmap of Natural Earth, which is in the public domain. -->\n<g id=\"world\">\n", width,
		height)
	codes := slices.SortedFunc(maps.Keys(countries), func(a, b string) int {
		isDot := func(code string) int { return strings.Index(countries[code], "circle") } // 1, or else -1: below
		return cmp.Or(isDot(a)-isDot(b), strings.Compare(a, b))
	})
	for _, code := range codes {
		fmt.Fprintln(out, countries[code])
	}
	fmt.Fprintln(out, "</g>\n</svg>")
	return out.Flush()
}

// topology is a TopoJSON file: shapes share the arcs along their borders.
type topology struct {
	Objects struct {
		Countries struct{ Geometries []geometry }
	}
	Arcs      [][][2]float64
	Transform struct{ Scale, Translate [2]float64 }

	arcs [][][2]float64 // longitudes and latitudes without what bends too little
}

type geometry struct {
	Type       string
	ID         string
	Properties struct{ Name string }
	Arcs       json.RawMessage
}

type point struct{ x, y int }

func read(file string) (*topology, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	world := new(topology)
	if err := json.Unmarshal(data, world); err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	for _, arc := range world.Arcs {
		var points [][2]float64
		var sum [2]float64
		for _, step := range arc {
			sum[0], sum[1] = sum[0]+step[0], sum[1]+step[1]
			at := [2]float64{sum[0]*world.Transform.Scale[0] + world.Transform.Translate[0],
				sum[1]*world.Transform.Scale[1] + world.Transform.Translate[1]}
			if n := len(points); n > 0 {
				at[0] += turn(points[n-1][0], at[0])
			}
			points = append(points, at)
		}
		world.arcs = append(world.arcs, simplify(points))
	}
	return world, nil
}

// unnumbered are the codes of what has no number in the file.
var unnumbered = map[string]string{"Kosovo": "XK", "N. Cyprus": "CY", "Somaliland": "SO"}

// code returns the two letters of a country; "" if it has none.
func (g geometry) code() string {
	if code, named := unnumbered[g.Properties.Name]; named {
		return code
	}
	region, err := language.ParseRegion(g.ID)
	if err != nil || len(region.String()) != 2 {
		return ""
	}
	return region.String()
}

// project is the Natural Earth projection (Šavrič, Jenny, Patterson 2011). Longitudes beyond 180 lie to the east.
func project(at [2]float64) [2]float64 {
	longitude, latitude := at[0]*math.Pi/180, at[1]*math.Pi/180
	l2 := latitude * latitude
	l4 := l2 * l2
	x := longitude * (0.8707 - 0.131979*l2 + l4*(-0.013791+l4*(0.003971*l2-0.001529*l4)))
	y := latitude * (1.007226 + l2*(0.015085+l4*(-0.044475+0.028874*l2-0.005916*l4)))
	const widest, north = 0.8707 * math.Pi, 1.375 // x of 180° on the equator, y of 83.7°
	const scale = width / 2 / widest
	return [2]float64{width/2 + x*scale, top + (north-y)*scale}
}

// simplify leaves out points that hardly bend an arc, those that bend it least first (Visvalingam). Both ends stay.
func simplify(points [][2]float64) [][2]float64 {
	points = slices.Clone(points)
	for len(points) > 2 {
		least, at := math.Inf(1), 0
		for i := 1; i < len(points)-1; i++ {
			a, b, c := project(points[i-1]), project(points[i]), project(points[i+1])
			if area := math.Abs((b[0]-a[0])*(c[1]-a[1])-(c[0]-a[0])*(b[1]-a[1])) / 2; area < least {
				least, at = area, i
			}
		}
		if least >= minBend || points[0] == points[len(points)-1] && len(points) <= 5 {
			break
		}
		points = slices.Delete(points, at, at+1)
	}
	return points
}

// turn returns the degrees by which a longitude has to turn to be next to another one: arcs cross the antimeridian.
func turn(from, to float64) float64 { return math.Round((from-to)/360) * 360 }

// land returns the area of a country and its outer shapes.
func (t *topology) land(g geometry) (land float64, rings [][]point) {
	var polygons [][][]int
	if g.Type == "Polygon" {
		polygons = make([][][]int, 1)
		_ = json.Unmarshal(g.Arcs, &polygons[0])
	} else {
		_ = json.Unmarshal(g.Arcs, &polygons)
	}
	for _, polygon := range polygons {
		ring := t.ring(polygon[0])
		land += area(ring)
		rings = append(rings, ring)
	}
	return land, rings
}

// ring joins arcs. A negative number is an arc backwards.
func (t *topology) ring(arcs []int) (ring []point) {
	var all [][2]float64
	west := 0.0
	for _, number := range arcs {
		arc := t.arcs[max(number, ^number)]
		if number < 0 {
			arc = slices.Clone(arc)
			slices.Reverse(arc)
		}
		for _, at := range arc {
			if n := len(all); n > 0 {
				at[0] += turn(all[n-1][0], at[0])
			}
			west = min(west, at[0])
			all = append(all, at)
		}
	}
	for _, at := range all {
		if west < -180 { // the shape is in the far east
			at[0] += 360
		}
		at = project(at)
		ring = append(ring, point{int(math.Round(at[0])), int(math.Round(at[1]))})
	}
	return slices.Compact(ring)
}

func area(ring []point) float64 {
	sum := 0
	for i, p := range ring {
		q := ring[(i+1)%len(ring)]
		sum += p.x*q.y - q.x*p.y
	}
	return math.Abs(float64(sum)) / 2
}

// center returns the middle of the largest shape.
func center(rings [][]point) point {
	largest := slices.MaxFunc(rings, func(a, b []point) int { return int(area(a) - area(b)) })
	low, high := largest[0], largest[0]
	for _, p := range largest {
		low, high = point{min(low.x, p.x), min(low.y, p.y)}, point{max(high.x, p.x), max(high.y, p.y)}
	}
	return point{(low.x + high.x) / 2, (low.y + high.y) / 2}
}

// path returns the shapes that can be seen, in relative steps.
func path(rings [][]point, land float64) string {
	var d strings.Builder
	for _, ring := range rings {
		if n := area(ring); n < minIsle && n < land {
			continue
		}
		ring = ring[:len(ring)-1] // z returns to the first
		fmt.Fprintf(&d, "M%d %d", ring[0].x, ring[0].y)
		for i, p := range ring[1:] {
			x, y := p.x-ring[i].x, p.y-ring[i].y
			if i == 0 {
				d.WriteString("l")
			} else if x >= 0 {
				d.WriteString(" ")
			}
			fmt.Fprintf(&d, "%d", x)
			if y >= 0 {
				d.WriteString(" ")
			}
			fmt.Fprintf(&d, "%d", y)
		}
		d.WriteString("z")
	}
	return d.String()
}
