// What an app names of the modules below, type by type: all of a module would bring names such as `Statement`
// and `IPAddress` into every file of an app. Members come along, also under MemberImportVisibility.

@_exported public import struct SslPinningPlatform.ResponseChunks
@_exported public import enum SslPinningRules.ChainFault
@_exported public import struct SslPinningRules.Pin
@_exported public import struct SslPinningRules.PinEvaluation
@_exported public import struct SslPinningRules.RegistryMinimum
@_exported public import enum SslPinningRules.RegistryProblem
@_exported public import struct SslPinningRules.RegistryStamp
@_exported public import struct SslPinningRules.SPKIPin
@_exported public import enum SslPinningRules.TrustMode
@_exported public import enum SslPinningRules.UnlistedHosts
