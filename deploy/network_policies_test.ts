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
    return opens(listAt(rule, "ports"), port, protocol) &&
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

/** A Pod, with the address that a policy may let to in place of its labels. */
interface Peer {
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly address: string;
}

const GUEST: Peer = {
  namespace: "opensandbox",
  labels: { "sandbox.opensandbox.io/pool-name": "ci-vm" },
  address: "10.1.0.4",
};
const CONTROLLER: Peer = {
  namespace: "gitea-dynamic-runner",
  labels: {
    "app.kubernetes.io/name": "gitea-dynamic-runner",
    "app.kubernetes.io/component": "controller",
  },
  address: "10.1.0.5",
};
/** Something outside of the cluster, or on its nodes. */
const outside = (address: string): Peer => ({ namespace: "", labels: {}, address });

function hasLabels(selector: unknown, labels: Peer["labels"]): boolean {
  const wanted = at(selector, "matchLabels");
  return !isObject(wanted) || Object.entries(wanted).every(([key, value]) => labels[key] === value);
}

/** Whether a peer of a rule, in a policy of `namespace`, stands for that Pod. */
function standsFor(peer: unknown, namespace: string, { address, ...pod }: Peer): boolean {
  const block = at(peer, "ipBlock");
  if (block !== undefined) {
    return inBlock(address, String(at(block, "cidr"))) &&
      !listAt(block, "except").some((cidr) => inBlock(address, String(cidr)));
  }
  const there = at(peer, "namespaceSelector") === undefined
    ? pod.namespace === namespace
    : takesIn(peer, pod.namespace);
  return there && hasLabels(at(peer, "podSelector"), pod.labels);
}

/** Without ports a rule is about all of them. */
function opens(ports: readonly unknown[], port: number, protocol: string): boolean {
  return ports.length === 0 ||
    ports.some((one) => at(one, "port") === port && at(one, "protocol") === protocol);
}

/** Whether the policies let one Pod open a connection to another: out of the one, and into the other. */
async function connects(from: Peer, to: Peer, port: number, protocol = "TCP"): Promise<boolean> {
  const files = ["network-policies.yaml", "examples/microvms.yaml"];
  const policies = (await Promise.all(files.map(readManifests))).flat()
    .filter((one) => at(one, "kind") === "NetworkPolicy");
  const passes = (way: "Ingress" | "Egress", self: Peer, other: Peer) => {
    const own = policies.filter((one) =>
      at(one, "metadata", "namespace") === self.namespace &&
      listAt(one, "spec", "policyTypes").includes(way) &&
      hasLabels(at(one, "spec", "podSelector"), self.labels)
    );
    // A Pod that no policy selects is open.
    if (own.length === 0) return true;
    const [rules, peers] = way === "Ingress" ? ["ingress", "from"] : ["egress", "to"];
    return own.some((one) =>
      listAt(one, "spec", rules ?? "").some((rule) =>
        opens(listAt(rule, "ports"), port, protocol) &&
        listAt(rule, peers ?? "").some((peer) => standsFor(peer, self.namespace, other))
      )
    );
  };
  return passes("Egress", from, to) && passes("Ingress", to, from);
}

Deno.test("guests of microVMs reach the facade, SPIRE, name servers and the world", async () => {
  const spire = {
    namespace: "spire-server",
    labels: { "app.kubernetes.io/name": "server" },
    address: "10.1.0.6",
  };
  const dns = { namespace: "kube-system", labels: { "k8s-app": "kube-dns" }, address: "10.1.0.7" };
  assert.equal(await connects(GUEST, CONTROLLER, 8443), true);
  assert.equal(await connects(GUEST, spire, 8081), true);
  for (const protocol of ["UDP", "TCP"]) {
    assert.equal(await connects(GUEST, dns, 53, protocol), true);
    assert.equal(await connects(GUEST, outside("169.254.20.10"), 53, protocol), true);
  }
  for (const address of ["198.51.100.7", "2001:db8::7"]) {
    assert.equal(await connects(GUEST, outside(address), 443), true, address);
  }
});

Deno.test("guests of microVMs reach neither pages, NATS, OpenSandbox, nodes nor metadata", async () => {
  const nats = {
    namespace: "gitea-dynamic-runner",
    labels: { "app.kubernetes.io/name": "nats" },
    address: "10.1.0.8",
  };
  const system = { namespace: "opensandbox-system", labels: {}, address: "10.1.0.9" };
  const neighbour = { ...GUEST, address: "10.1.0.10" };
  for (const port of [8080, 8081]) assert.equal(await connects(GUEST, CONTROLLER, port), false);
  assert.equal(await connects(GUEST, nats, 4222), false);
  for (const port of [80, 8080, 8090]) assert.equal(await connects(GUEST, system, port), false);
  for (const port of [5758, 8443, 44772]) {
    assert.equal(await connects(GUEST, neighbour, port), false, String(port));
  }
  const addresses = [
    ...["10.96.0.1", "172.20.0.1", "192.168.1.10", "100.64.0.1", "fd00:10:96::1"], // API servers
    ...["169.254.169.254", "100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254"],
  ];
  for (const address of addresses) {
    for (const port of [80, 443, 6443]) {
      assert.equal(await connects(GUEST, outside(address), port), false, `${address}:${port}`);
    }
  }
});

Deno.test("of the sandboxes' namespace only guests of the pool are let in to the facade", async () => {
  const other = { ...GUEST, labels: { "sandbox.opensandbox.io/pool-name": "agents" } };
  assert.equal(await connects(other, CONTROLLER, 8443), false);
  assert.equal(await connects({ ...GUEST, namespace: "default" }, CONTROLLER, 8443), false);
  assert.equal(await connects({ ...other, namespace: "gitea-actions" }, CONTROLLER, 8443), true);
});

Deno.test("only OpenSandbox's controller dials guests of microVMs", async () => {
  const from = (namespace: string): Peer => ({ ...CONTROLLER, namespace, labels: {} });
  assert.equal(await connects(from("opensandbox-system"), GUEST, 5758), true);
  for (const namespace of ["opensandbox", "gitea-actions", "default"]) {
    assert.equal(await connects(from(namespace), GUEST, 5758), false, namespace);
  }
});
