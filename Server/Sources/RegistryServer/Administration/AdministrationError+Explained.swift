import RegistryCore
import SslPinningPlatform

extension AdministrationError: ExplainedError {}
