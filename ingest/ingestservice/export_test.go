package ingestservice

import (
	"context"
	"log/slog"

	"github.com/VictoriaMetrics/metrics"
)

// RunCompactions compacts a store until ctx is done.
func RunCompactions(ctx context.Context, store compacter, log *slog.Logger, set *metrics.Set) {
	newCompactions(store, log, set).run(ctx)
}
