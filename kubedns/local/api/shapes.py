"""The fields of each kind that the local API serves, in the order of the Go structs.

Source: k8s.io/api core/v1 and discovery/v1 types.go.
"""

from typing import Final

from kubedns.local.api.schema import (
    ANYTHING,
    BOOL,
    BOOL_POINTER,
    INT,
    INT_OR_TEXT,
    INT_POINTER,
    TEXT,
    TEXT_POINTER,
    ListOf,
    Scalar,
    StringMap,
    Struct,
)

_TEXTS: Final = ListOf(TEXT)
_ANYTHINGS: Final = ListOf(ANYTHING)
_REFERENCE: Final = Struct(
    dict.fromkeys(("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"), TEXT)
)
_METADATA: Final = Struct(
    {
        "name": TEXT,
        "generateName": TEXT,
        "namespace": TEXT,
        "selfLink": TEXT,
        "uid": TEXT,
        "resourceVersion": TEXT,
        "generation": Scalar("int64", (int,)),
        "creationTimestamp": TEXT,
        "deletionTimestamp": TEXT,
        "deletionGracePeriodSeconds": INT_POINTER,
        "labels": StringMap(),
        "annotations": StringMap(),
        "ownerReferences": ListOf(
            Struct(
                {
                    "apiVersion": TEXT,
                    "kind": TEXT,
                    "name": TEXT,
                    "uid": TEXT,
                    "controller": BOOL_POINTER,
                    "blockOwnerDeletion": BOOL_POINTER,
                }
            ),
            merge_key="uid",
        ),
        "finalizers": ListOf(TEXT, merge=True),
        "managedFields": _ANYTHINGS,
    },
    always=True,
)
_CONDITIONS: Final = ListOf(ANYTHING, merge_key="type")
SERVICE: Final = Struct(
    {
        "metadata": _METADATA,
        "spec": Struct(
            {
                "ports": ListOf(
                    Struct(
                        {
                            "name": TEXT,
                            "protocol": TEXT,
                            "appProtocol": TEXT_POINTER,
                            "port": INT_POINTER,
                            "targetPort": INT_OR_TEXT,
                            "nodePort": INT,
                        }
                    ),
                    merge_key="port",
                ),
                "selector": StringMap(),
                "clusterIP": TEXT,
                "clusterIPs": _TEXTS,
                "type": TEXT,
                "externalIPs": _TEXTS,
                "sessionAffinity": TEXT,
                "loadBalancerIP": TEXT,
                "loadBalancerSourceRanges": _TEXTS,
                "externalName": TEXT,
                "externalTrafficPolicy": TEXT,
                "healthCheckNodePort": INT,
                "publishNotReadyAddresses": BOOL,
                "sessionAffinityConfig": Struct({"clientIP": Struct({"timeoutSeconds": INT_POINTER})}),
                "ipFamilies": _TEXTS,
                "ipFamilyPolicy": TEXT,
                "allocateLoadBalancerNodePorts": BOOL_POINTER,
                "loadBalancerClass": TEXT,
                "internalTrafficPolicy": TEXT,
                "trafficDistribution": TEXT,
            },
            always=True,
        ),
        "status": Struct(
            {"loadBalancer": Struct({"ingress": _ANYTHINGS}, always=True), "conditions": _CONDITIONS},
            always=True,
        ),
    }
)
_ENDPOINT_ADDRESSES: Final = ListOf(
    Struct({"ip": TEXT_POINTER, "hostname": TEXT, "nodeName": TEXT, "targetRef": _REFERENCE})
)
ENDPOINTS: Final = Struct(
    {
        "metadata": _METADATA,
        "subsets": ListOf(
            Struct(
                {
                    "addresses": _ENDPOINT_ADDRESSES,
                    "notReadyAddresses": _ENDPOINT_ADDRESSES,
                    "ports": ListOf(
                        Struct(
                            {
                                "name": TEXT,
                                "port": INT_POINTER,
                                "protocol": TEXT,
                                "appProtocol": TEXT_POINTER,
                            }
                        )
                    ),
                }
            )
        ),
    }
)
ENDPOINT_SLICE: Final = Struct(
    {
        "metadata": _METADATA,
        "addressType": TEXT_POINTER,
        "endpoints": ListOf(
            Struct(
                {
                    "addresses": ListOf(TEXT, null_when_empty=True),
                    "conditions": Struct(
                        dict.fromkeys(("ready", "serving", "terminating"), BOOL_POINTER), always=True
                    ),
                    "hostname": TEXT_POINTER,
                    "targetRef": _REFERENCE,
                    "deprecatedTopology": StringMap(),
                    "nodeName": TEXT_POINTER,
                    "zone": TEXT_POINTER,
                    "hints": Struct({"forZones": _ANYTHINGS, "forNodes": _ANYTHINGS}),
                }
            ),
            null_when_empty=True,
        ),
        "ports": ListOf(
            Struct(
                {
                    "name": TEXT_POINTER,
                    "protocol": TEXT_POINTER,
                    "port": INT_POINTER,
                    "appProtocol": TEXT_POINTER,
                }
            ),
            null_when_empty=True,
        ),
    }
)
CONFIG_MAP: Final = Struct(
    {"metadata": _METADATA, "immutable": BOOL_POINTER, "data": StringMap(), "binaryData": StringMap()}
)
NAMESPACE: Final = Struct(
    {
        "metadata": _METADATA,
        "spec": Struct({"finalizers": _TEXTS}, always=True),
        "status": Struct({"phase": TEXT, "conditions": _CONDITIONS}, always=True),
    }
)
NODE_INFO: Final = (
    "machineID",
    "systemUUID",
    "bootID",
    "kernelVersion",
    "osImage",
    "containerRuntimeVersion",
    "kubeletVersion",
    "kubeProxyVersion",
    "operatingSystem",
    "architecture",
)
NODE: Final = Struct(
    {
        "metadata": _METADATA,
        "spec": Struct(
            {
                "podCIDR": TEXT,
                "podCIDRs": ListOf(TEXT, merge=True),
                "providerID": TEXT,
                "unschedulable": BOOL,
                "taints": _ANYTHINGS,
                "configSource": ANYTHING,
                "externalID": TEXT,
            },
            always=True,
        ),
        "status": Struct(
            {
                "capacity": ANYTHING,
                "allocatable": ANYTHING,
                "phase": TEXT,
                "conditions": _CONDITIONS,
                "addresses": ListOf(ANYTHING, merge_key="type"),
                "daemonEndpoints": Struct(
                    {"kubeletEndpoint": Struct({"Port": INT_POINTER}, always=True)}, always=True
                ),
                "nodeInfo": Struct({**dict.fromkeys(NODE_INFO, TEXT_POINTER), "swap": ANYTHING}, always=True),
                "images": _ANYTHINGS,
                "volumesInUse": _TEXTS,
                "volumesAttached": _ANYTHINGS,
                "config": ANYTHING,
                "runtimeHandlers": _ANYTHINGS,
                "features": ANYTHING,
                "declaredFeatures": _ANYTHINGS,
            },
            always=True,
        ),
    }
)
