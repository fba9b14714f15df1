import { Component, type ReactNode } from "react";
import { Button, Empty } from "../design/parts";

/** Keeps an error in one page from taking the frame with it. */
export class ErrorBoundary extends Component<{ children: ReactNode }, { error: Error | null }> {
  override state = { error: null as Error | null };

  static getDerivedStateFromError(error: Error) {
    return { error };
  }

  override render() {
    const { error } = this.state;
    if (error === null) return this.props.children;
    // The browser caches the failure of a module: only a new page requests it again.
    if (/dynamically imported module|importing a module/i.test(error.message)) {
      return (
        <Empty title="This page could not be loaded" action={<Button icon="refresh" onClick={() => window.location.reload()}>Reload</Button>}>
          The server is away, or it was updated since this tab was opened.
        </Empty>
      );
    }
    return (
      <Empty title="This page failed" action={<Button icon="refresh" onClick={() => this.setState({ error: null })}>Try again</Button>}>
        An error in the page itself, not in your data. The browser's console has the details.
      </Empty>
    );
  }
}
