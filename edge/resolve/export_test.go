package resolve

// EncodeLocation is encodeLocation for tests.
var EncodeLocation = encodeLocation

// State is state for tests.
type State = state

// The methods of State.
var (
	SetFresh = (*state).setFresh
	Fresh    = (*state).fresh
	Drop     = (*state).drop
	Dropped  = (*state).dropped
	SetStale = (*state).setStale
)
