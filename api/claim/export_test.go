package claim

var (
	ReadServers = readServers
	JudgeTXT    = judgeTXT
)
