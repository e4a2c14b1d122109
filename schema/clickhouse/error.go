package clickhouse

import (
	"context"
	"errors"

	ch "github.com/ClickHouse/clickhouse-go/v2"

	"linkstream/schema"
)

// wrap adds a code and the operation that failed to err; nil stays nil.
func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return schema.Errorf(codeOf(err), format+": %w", append(args, err)...)
}

func codeOf(err error) schema.Code {
	var own *schema.Error
	var misused *ch.OpError
	switch answer := exceptionCode(err); {
	case errors.As(err, &own):
		return own.Code
	case errors.Is(err, context.Canceled): // the caller went away
		return schema.CodeInternal
	case errors.As(err, &misused): // clickhouse-go did not take a value
		return schema.CodeInternal
	case answer == violatedConstraint:
		return schema.CodeConflict
	case answer == 0 || maySucceedLater[answer]: // 0: no answer, the connection or the time ran out
		return schema.CodeUnavailable
	}
	return schema.CodeInternal
}

// exceptionCode returns the number of the server's exception, 0 where there is none.
func exceptionCode(err error) int32 {
	var answered *ch.Exception
	if errors.As(err, &answered) {
		return answered.Code
	}
	return 0
}

// Numbers of ClickHouse's src/Common/ErrorCodes.cpp.
const (
	tableExists        = 57  // TABLE_ALREADY_EXISTS
	violatedConstraint = 469 // VIOLATED_CONSTRAINT: the position was checked too long ago, others may have counted since
)

// maySucceedLater are those of a server, or of a cluster, that cannot do its work at the moment.
var maySucceedLater = map[int32]bool{
	159: true, // TIMEOUT_EXCEEDED
	160: true, // TOO_SLOW
	202: true, // TOO_MANY_SIMULTANEOUS_QUERIES
	209: true, // SOCKET_TIMEOUT
	210: true, // NETWORK_ERROR
	236: true, // ABORTED: the server is stopping
	241: true, // MEMORY_LIMIT_EXCEEDED
	242: true, // TABLE_IS_READ_ONLY: without Keeper
	243: true, // NOT_ENOUGH_SPACE
	252: true, // TOO_MANY_PARTS
	254: true, // NO_ACTIVE_REPLICAS
	279: true, // ALL_CONNECTION_TRIES_FAILED
	285: true, // TOO_FEW_LIVE_REPLICAS
	286: true, // UNSATISFIED_QUORUM_FOR_PREVIOUS_WRITE
	289: true, // REPLICA_IS_NOT_IN_QUORUM
	319: true, // UNKNOWN_STATUS_OF_INSERT
	369: true, // ALL_REPLICAS_ARE_STALE
	394: true, // QUERY_WAS_CANCELLED
	425: true, // SYSTEM_ERROR
	999: true, // KEEPER_EXCEPTION
}
