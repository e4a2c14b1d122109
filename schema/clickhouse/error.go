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

// codeOf returns the code of an error of clickhouse-go, of the server or of a method of ClickStore.
func codeOf(err error) schema.Code {
	var own *schema.Error
	var usage *ch.OpError
	switch answer := exceptionCode(err); {
	case errors.As(err, &own):
		return own.Code
	case errors.Is(err, context.Canceled): // the caller gave up
		return schema.CodeInternal
	case errors.As(err, &usage): // clickhouse-go rejected a value
		return schema.CodeInternal
	case answer == violatedConstraint:
		return schema.CodeConflict
	case answer == 0 || transientExceptions[answer]: // 0: the connection failed, or the time is over
		return schema.CodeUnavailable
	}
	return schema.CodeInternal
}

// exceptionCode returns the number of the server's exception, or 0 if err is not one.
func exceptionCode(err error) int32 {
	var exception *ch.Exception
	if errors.As(err, &exception) {
		return exception.Code
	}
	return 0
}

// Exceptions have the numbers of src/Common/ErrorCodes.cpp of ClickHouse.
const (
	tableExists        = 57  // TABLE_ALREADY_EXISTS
	violatedConstraint = 469 // VIOLATED_CONSTRAINT: the position was read too long ago, others may have counted since
)

// transientExceptions are those of a server or a cluster that cannot work at the moment.
var transientExceptions = map[int32]bool{
	60:  true, // UNKNOWN_TABLE: before Migrate
	159: true, // TIMEOUT_EXCEEDED
	160: true, // TOO_SLOW
	202: true, // TOO_MANY_SIMULTANEOUS_QUERIES
	209: true, // SOCKET_TIMEOUT
	210: true, // NETWORK_ERROR
	236: true, // ABORTED: the server is stopping
	241: true, // MEMORY_LIMIT_EXCEEDED
	242: true, // TABLE_IS_READ_ONLY: Keeper is not reachable
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
