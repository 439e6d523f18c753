/** A running control plane. */
export interface ControlPlane {
  /** Path of the administrator's kubeconfig, which exists until the stop. */
  kubeconfig: string;
  /** The server's address, such as https://127.0.0.1:41234. */
  url: string;
  /** Stops the control plane and removes its files. */
  stop(): Promise<void>;
}

export interface Options {
  /** The program's flags, which `npx kube-test-control-plane --help` lists. */
  flags?: string[];
  /** Time limit of the start, in milliseconds; 30000 by default. */
  timeout?: number;
}

/**
 * Starts a control plane with a port and a kubeconfig of its own, and waits until it is ready.
 * Fails with the program's reason if it can't start.
 */
export function start(options?: Options): Promise<ControlPlane>;

/** Returns the path of the program. Throws if no package contains it for this platform. */
export function program(): string;
