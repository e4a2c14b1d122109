package testengines

// Install is exported to tests because whether the engines use it depends on the machine.
var Install = install

// TempFolderIn is TempFolder in a folder that the test chooses.
var TempFolderIn = tempFolder
