// An app that imports SslPinning alone can name what the API takes and hands out: `TrustMode`,
// `PinEvaluation`, `RegistryProblem` and the like.
@_exported import SslPinningRules
