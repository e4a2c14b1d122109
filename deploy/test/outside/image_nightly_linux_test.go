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
	registry := startRegistry(t, m)
	digest := pushImage(t, m, registry)
	t.Run("is built the same again", func(t *testing.T) {
		testkit.Equal(t, "digest", pushImage(t, m, registry), digest)
	})
	t.Run("has programs for arm64", func(t *testing.T) {
		out := m.Run(t, `cd $(buildah mount $(buildah from --quiet --arch arm64 $1/linkstream@$2)); for p in usr/bin/*; do `+
			`od -An -j18 -N2 -tx2 $p; done`, registry, digest)
		testkit.Equal(t, "machines of the ELF files", strings.Fields(out), slices.Repeat([]string{"00b7"}, 6))
	})
}
