import { useState } from "react";
import { accessKey, setAccessKey } from "../api/client";
import { Button } from "../design/parts";
import styles from "./shell.module.css";

/** Asks for an access key. The key stays in this tab and is forgotten when the tab closes. */
export function KeyPrompt() {
  const [key, setKey] = useState("");
  const refused = accessKey() !== null;
  return (
    <main className={styles.keyPage}>
      <form
        className={styles.keyForm}
        onSubmit={(event) => {
          event.preventDefault();
          setAccessKey(key.trim());
        }}
      >
        <h1>This server needs a key</h1>
        <p>
          Ask an administrator of this server for a key. <code>downriver keys create NAME --role reader</code> creates one.
        </p>
        <label htmlFor="key">Access key</label>
        <input id="key" type="password" autoComplete="off" autoFocus value={key} onChange={(event) => setKey(event.target.value)} />
        {refused ? <p className={styles.refused} role="alert">The server does not accept this key.</p> : null}
        <Button type="submit" kind="primary" disabled={!key.trim()}>Open</Button>
      </form>
    </main>
  );
}
