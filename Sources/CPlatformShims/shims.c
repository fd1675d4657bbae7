#include "CPlatformShims.h"
