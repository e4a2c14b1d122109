//go:build deploy && nightly

package outside_test

import (
	"slices"
	"strings"
	"testing"

	"linkstream/schema/testkit"
)

func TestImageOfArchitectures(t *testing.T) {
	m := images(t)
	t.Run("is built the same again", func(t *testing.T) {
		testkit.Equal(t, "image", buildImage(t, m, "amd64", "again"), buildImage(t, m, "amd64", "amd64"))
	})
	t.Run("is built for arm64", func(t *testing.T) {
		buildImage(t, m, "arm64", "arm64")
		testkit.Equal(t, "architecture", inspect(t, m, "arm64").Architecture, "arm64")
		out := m.Run(t, `cd $(buildah mount $(buildah from --arch arm64 --pull-never localhost/linkstream:arm64)); for p in `+
			`usr/bin/*; do od -An -j18 -N2 -tx2 $p; done`)
		testkit.Equal(t, "machines of the ELF files", strings.Fields(out), slices.Repeat([]string{"00b7"}, 5))
	})
}
