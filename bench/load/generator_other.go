//go:build !linux

package load

import "context"

func generate(ctx context.Context, t Target, p pace) (Result, error) {
	return generatePortable(ctx, t, p)
}
