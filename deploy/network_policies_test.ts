import assert from "node:assert/strict";
import { BlockList, isIPv6 } from "node:net";
import { isObject } from "../lib/json_object.ts";
import { at, listAt, readManifest, readManifests } from "../tests/support/kube_manifests.ts";

const inBlock = (address: string, cidr: string): boolean => {
  const family = (text: string) => isIPv6(text) ? "ipv6" : "ipv4";
  const [network = "", prefix] = cidr.split("/");
  const list = new BlockList();
  list.addSubnet(network, Number(prefix), family(network));
  return list.check(address, family(address));
};

/** Whether the executors' policy lets them out to an address and port by its blocks of addresses. */
async function letsOut(address: string, port: number, protocol = "TCP"): Promise<boolean> {
  const policy = await readManifest("network-policies.yaml", {
    kind: "NetworkPolicy",
    name: "executors",
  });
  return listAt(policy, "spec", "egress").some((rule) => {
    const ports = listAt(rule, "ports");
    const open = ports.length === 0 ||
      ports.some((one) => at(one, "port") === port && at(one, "protocol") === protocol);
    return open &&
      listAt(rule, "to").some((peer) =>
        inBlock(address, String(at(peer, "ipBlock", "cidr") ?? "192.0.2.0/32")) &&
        !listAt(peer, "ipBlock", "except").some((cidr) => inBlock(address, String(cidr)))
      );
  });
}

Deno.test("executors reach the world and name servers, no cloud's metadata service", async () => {
  for (const address of ["198.51.100.7", "10.96.0.10", "2001:db8::7", "fd00:10:96::a"]) {
    assert.equal(await letsOut(address, 443), true, address);
  }
  const metadata = [
    ...["169.254.169.254", "169.254.170.2", "169.254.42.42", "100.100.100.200", "168.63.129.16"],
    ...["192.0.0.192", "fe80::a9fe:a9fe", "fd00:ec2::254", "fd20:ce::254", "fd00:42::42"],
  ];
  for (const address of metadata) {
    for (const port of [53, 80, 443]) assert.equal(await letsOut(address, port), false, address);
  }
  for (const address of ["169.254.20.10", "169.254.25.10"]) {
    for (const protocol of ["UDP", "TCP"]) assert.ok(await letsOut(address, 53, protocol), address);
    assert.equal(await letsOut(address, 80), false, address);
  }
});

/** Whether a peer of a policy takes in every Pod of a namespace. */
function takesIn(peer: unknown, namespace: string): boolean {
  const selector = at(peer, "namespaceSelector");
  if (selector === undefined) return false;
  const name = "kubernetes.io/metadata.name";
  const labels = at(selector, "matchLabels");
  if (isObject(labels) && labels[name] !== namespace) return false;
  return listAt(selector, "matchExpressions").every((one) => {
    assert.equal(at(one, "key"), name);
    return listAt(one, "values").includes(namespace) === (at(one, "operator") === "In");
  });
}

/** Ports to which Ingress policies of the controller's namespace let in Pods of another one. */
async function portsFor(namespace: string, file: string): Promise<unknown[]> {
  const found: unknown[] = [];
  for (const policy of await readManifests(file)) {
    if (at(policy, "kind") !== "NetworkPolicy") continue;
    if (at(policy, "metadata", "namespace") !== "gitea-dynamic-runner") continue;
    for (const rule of listAt(policy, "spec", "ingress")) {
      if (!listAt(rule, "from").some((peer) => takesIn(peer, namespace))) continue;
      found.push(...listAt(rule, "ports").map((one) => at(one, "port")));
    }
  }
  return found;
}

Deno.test("executors are let in to the facade's port alone, whoever scrapes to the metrics", async () => {
  const file = "network-policies.yaml";
  assert.deepEqual(await portsFor("gitea-actions", file), [8443]);
  assert.deepEqual(await portsFor("monitoring", file), [8081]);
});

Deno.test("the admin Service of the examples leads to a port that its policy opens", async () => {
  const file = "examples/admin-service.yaml";
  const service = await readManifest(file, { kind: "Service", name: "admin" });
  const policy = await readManifest(file, { kind: "NetworkPolicy", name: "admin" });
  const [port] = listAt(service, "spec", "ports");
  assert.deepEqual(await portsFor("ingress-nginx", file), [at(port, "targetPort")]);
  assert.deepEqual(await portsFor("gitea-actions", file), []);
  assert.deepEqual(
    at(policy, "spec", "podSelector", "matchLabels"),
    at(service, "spec", "selector"),
  );
});
