import RegistryCore
import RegistryStores

extension SealFault {
  /// The kind of alert that it is for as long as it lasts.
  var alert: ServerAlert.Kind { isOtherKey ? .otherSigningKey : .sealBroken }

  /// The kind of trouble that probes tell.
  var healthKind: HealthReport.Kind { isOtherKey ? .key : .seal }
}
